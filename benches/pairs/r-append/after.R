# Bootstrap of a survival rate: one connection for all replicates.
set.seed(19)
lifetimes <- rexp(200, 1 / 30)
out <- file("bootstrap.csv", "w")
cat("replicate,rate\n", file = out)
rates <- numeric(15000)
for (i in seq_along(rates)) {
  rates[i] <- 1 / mean(sample(lifetimes, replace = TRUE))
  cat(i, ",", rates[i], "\n", sep = "", file = out)
}
close(out)
cat(sprintf("%.6f %.6f\n", mean(rates), sd(rates)))
