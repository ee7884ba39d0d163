def refund(price: float, count: int) -> float:
    total = price * count
    return round(total, 2)
