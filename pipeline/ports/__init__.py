"""The ports: what the core asks of a log, a state store, indexes and models.

Every sentence on ordering, idempotence and missing keys below has a test in tests/contracts that
each backend passes. No port shares a transaction with another. All raise BackendUnavailable when
the thing behind them does not answer, and nothing else that is not named here.
"""
