"""Code that the volume plugins share: claims, CSI migration, and the topology of volumes."""
