// The cases of the table that `make test` leaves out.
import './cni-check.test.ts';
