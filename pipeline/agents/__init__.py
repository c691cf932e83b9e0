"""The Faust shells: Kafka in, the same steps as embedded, acknowledged when every store has accepted."""
