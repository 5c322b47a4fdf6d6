// Fills a histogram of energies, and writes each entry at once, with endl or a plain line break.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>

int main() {
    std::mt19937_64 engine(5);
    std::exponential_distribution<double> energy(0.2);
    std::ofstream out("energies.txt");
    const bool quick = std::getenv("NOFLUSH") != nullptr;
    double sum = 0;
    for (int event = 0; event < 500000; ++event) {
        const double e = energy(engine);
        sum += e;
        out << event << ' ' << e;
        if (quick)
            out << '\n';
        else
            out << std::endl;
    }
    std::cout << sum << "\n";
}
