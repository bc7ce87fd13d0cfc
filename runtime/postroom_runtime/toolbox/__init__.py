"""The tools Postroom itself gives to a model."""
