# Bootstrap of a survival rate: each replicate is appended to the table.
set.seed(19)
lifetimes <- rexp(200, 1 / 30)
out <- "bootstrap.csv"
cat("replicate,rate\n", file = out)
rates <- numeric(15000)
for (i in seq_along(rates)) {
  rates[i] <- 1 / mean(sample(lifetimes, replace = TRUE))
  cat(i, ",", rates[i], "\n", sep = "", file = out, append = TRUE)
}
cat(sprintf("%.6f %.6f\n", mean(rates), sd(rates)))
