"""A review as it is run: sent, received, reconciled finding by finding, finished (Impasse spec).

Everything durable stands in the run's folder (:mod:`troth.stores.reviews`); what is known of a run is what its records
replay to, so that a crash between any two of them loses nothing that was acknowledged.
"""
