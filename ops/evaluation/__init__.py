"""`shinsen eval`: golden questions asked of a running profile, measured, compared, reported, held to a bar."""
