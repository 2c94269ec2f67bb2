"""What happens to one call, and to several: arguments, hooks, dispatch, results, order."""
