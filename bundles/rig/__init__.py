"""What scenarios stand on: a server in its own process, clients of it, a scripted saddle, a faulty link, a report."""
