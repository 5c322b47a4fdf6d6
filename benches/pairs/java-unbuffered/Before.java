import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.Random;

/** Positions of a Brownian particle, as binary doubles. */
public class Before {
    public static void main(String[] arguments) throws IOException {
        Random random = new Random(31);
        double x = 0, y = 0;
        try (DataOutputStream out = new DataOutputStream(new FileOutputStream("path.bin"))) {
            for (int step = 0; step < 400_000; step++) {
                x += random.nextGaussian();
                y += random.nextGaussian();
                out.writeDouble(x);
                out.writeDouble(y);
            }
        }
        System.out.printf("%.6f %.6f%n", x, y);
    }
}
