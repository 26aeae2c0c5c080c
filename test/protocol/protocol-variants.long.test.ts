// The cases of the table that `make test` leaves out.
import './protocol-variants.test.ts';
