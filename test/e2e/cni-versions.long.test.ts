// The cases of the table that `make test` leaves out.
import './cni-versions.test.ts';
