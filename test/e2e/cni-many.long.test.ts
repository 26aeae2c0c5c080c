// The cases of the table that `make test` leaves out.
import './cni-many.test.ts';
