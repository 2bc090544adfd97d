"""What runs beside the requests: one idempotent function a file, and the runner that carries them out."""
