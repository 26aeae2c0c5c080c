// The cases of the table that `make test` leaves out.
import './packets.test.ts';
