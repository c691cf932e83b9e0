"""Operating Shinsen: command line, local stack, benchmarks, demo corpus, decisions."""
