// Simulates a random walk of neutrons through a slab, and writes one line for each collision.
#include <cmath>
#include <fstream>
#include <iostream>
#include <random>

int main() {
    std::mt19937_64 engine(20240611);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    const double mean_free_path = 1.7, thickness = 20.0, survival = 0.97;
    std::ofstream out("collisions.txt");
    long collisions = 0, transmitted = 0;
    for (int neutron = 0; neutron < 40000; ++neutron) {
        double x = 0.0, mu = 1.0;
        while (true) {
            x -= mean_free_path * mu * std::log(1.0 - uniform(engine));
            if (x < 0.0) break;
            if (x > thickness) { ++transmitted; break; }
            out << neutron << " " << x << " " << mu << std::endl;
            ++collisions;
            if (uniform(engine) > survival) break;
            mu = 2.0 * uniform(engine) - 1.0;
        }
    }
    std::cout << collisions << " collisions, " << transmitted << " transmitted\n";
}
