"""From kernel values to a feature map: landmarks, one pass over the rows, the core."""
