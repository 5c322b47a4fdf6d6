// Sums up the charge in the inner volume with a class that returns the n-th hit; the program
// requests all in order.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>

struct Hit { std::int64_t number; double x, y, z, charge; };

class HitFile {
public:
    explicit HitFile(const std::string &name) : in(name, std::ios::binary) {
        in.seekg(0, std::ios::end);
        count = static_cast<long>(in.tellg()) / static_cast<long>(sizeof(Hit));
        in.seekg(0);
    }
    long size() const { return count; }
    Hit get(long n) {
        Hit hit;
        in.seekg(n * static_cast<long>(sizeof(Hit)));
        in.read(reinterpret_cast<char *>(&hit), sizeof hit);
        return hit;
    }

private:
    std::ifstream in;
    long count;
};

int main() {
    HitFile hits("hits.raw");
    double inner = 0;
    for (long n = 0; n < hits.size(); ++n) {
        const Hit hit = hits.get(n);
        if (hit.x * hit.x + hit.y * hit.y < 100 * 100) inner += hit.charge;
    }
    std::cout << inner << "\n";
}
