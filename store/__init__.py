"""The ground floor: files, digests, ledgers and artefact manifests. Knows no Ray, no torch, no pandas."""
