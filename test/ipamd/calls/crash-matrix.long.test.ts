// The cases of the table that `make test` leaves out.
import './crash-matrix.test.ts';
