"""What the site's scheduler says of jobs: owner, name, nodes and times. One file each."""
