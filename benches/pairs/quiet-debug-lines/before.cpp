// Averages logistic maps over many starts, and writes a line with endl for each parameter, some
// hundred per second.
#include <cmath>
#include <fstream>
#include <iostream>

int main() {
    std::ofstream out("lyapunov.txt");
    double sum = 0;
    for (int n = 0; n < 400; ++n) {
        const double r = 3.5 + 0.5 * n / 400;
        double x = 0.3, exponent = 0;
        for (int step = 0; step < 200000; ++step) {
            x = r * x * (1 - x);
            exponent += std::log(std::fabs(r * (1 - 2 * x)) + 1e-300);
        }
        out << r << " " << exponent / 200000 << std::endl;
        sum += exponent / 200000;
    }
    std::cout << sum << "\n";
}
