"""Pure data: what travels between the parts of Shinsen. Imports nothing of ours."""
