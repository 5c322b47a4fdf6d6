// Sums bytes of records, one after the other as they lie in the file.
#include <fstream>
#include <iostream>
#include <vector>

int main(int argc, char **argv)
{
    std::vector<char> buffer(1 << 16);
    std::ifstream file;
    file.rdbuf()->pubsetbuf(buffer.data(), buffer.size());
    file.open(argc > 1 ? argv[1] : "events.dat", std::ios::binary);
    unsigned long sum = 0, records = 0;
    int header[2];
    std::vector<char> data;
    while (file.read(reinterpret_cast<char *>(header), sizeof header)) {
        data.resize(header[0]);
        if (!file.read(data.data(), header[0]))
            break;
        for (const char byte : data)
            sum += static_cast<unsigned char>(byte);
        records++;
    }
    std::cout << records << " records, sum " << sum << "\n";
}
