"""What every State must do: one suite per group of methods."""

from tests.contracts.state_generations import GenerationsContract
from tests.contracts.state_manifests import ManifestsContract
from tests.contracts.state_names import NamesContract
from tests.contracts.state_outcomes import OutcomesContract
from tests.contracts.state_publishing import PublishingContract
from tests.contracts.state_records import RecordsContract
from tests.contracts.state_sources import SourcesContract


class StateContract(
    RecordsContract,
    ManifestsContract,
    NamesContract,
    OutcomesContract,
    PublishingContract,
    GenerationsContract,
    SourcesContract,
):
    """Subclasses give the fixture `state`: an empty store, closed at the end."""
