// AA1, and AA1 to AA4
