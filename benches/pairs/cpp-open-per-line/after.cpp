// Simulates annealing of a spin glass; the log stays open.
#include <cmath>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

static void log_line(const std::string &line) {
    static std::ofstream log("anneal.log", std::ios::app);
    log << line << '\n';
}

int main() {
    const int n = 64, sweeps = 200000;
    std::mt19937 engine(99);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<int> spins(n, 1);
    std::vector<double> couplings(n);
    for (auto &one : couplings) one = normal(engine);
    double energy = 0;
    for (int i = 0; i < n; ++i) energy -= couplings[i];
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        const double beta = 0.1 + 3.0 * sweep / sweeps;
        const int i = engine() % n, left = (i + n - 1) % n, right = (i + 1) % n;
        const double change = 2.0 * spins[i] * (couplings[left] * spins[left] + couplings[i] * spins[right]);
        if (change < 0 || uniform(engine) < std::exp(-beta * change)) {
            spins[i] = -spins[i];
            energy += change;
        }
        log_line(std::to_string(sweep) + " " + std::to_string(energy));
    }
    std::cout << energy << "\n";
}
