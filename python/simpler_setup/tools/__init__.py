"""Programs that read what runs leave behind: `python -m simpler_setup.tools.<name>`."""
