// The cases of the table that `make test` leaves out.
import './scarce-subnet.test.ts';
