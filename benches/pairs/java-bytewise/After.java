import java.io.BufferedInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Mean quality of the reads of a FASTQ file. */
public class After {
    public static void main(String[] arguments) throws IOException {
        long sum = 0, count = 0;
        int line = 0;
        try (InputStream in = new BufferedInputStream(new FileInputStream("reads.fastq"))) {
            for (int letter = in.read(); letter >= 0; letter = in.read()) {
                if (letter == '\n') {
                    line++;
                } else if (line % 4 == 3) {
                    sum += letter - 33;
                    count++;
                }
            }
        }
        System.out.printf("%.4f %d%n", (double) sum / count, line / 4);
    }
}
