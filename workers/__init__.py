"""The Celery form of running jobs: ``celery -A workers.app worker`` and ``celery -A workers.app beat``."""
