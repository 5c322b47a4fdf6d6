// Sums bytes of records, and asks and sets the position for each of them.
#include <fstream>
#include <iostream>
#include <vector>

int main(int argc, char **argv)
{
    std::ifstream file(argc > 1 ? argv[1] : "events.dat", std::ios::binary);
    unsigned long sum = 0, records = 0;
    int header[2];
    std::vector<char> data;
    for (;;) {
        const auto start = file.tellg();
        if (!file.read(reinterpret_cast<char *>(header), sizeof header))
            break;
        file.seekg(start);
        file.seekg(sizeof header, std::ios::cur);
        data.resize(header[0]);
        if (!file.read(data.data(), header[0]))
            break;
        for (const char byte : data)
            sum += static_cast<unsigned char>(byte);
        records++;
    }
    std::cout << records << " records, sum " << sum << "\n";
}
