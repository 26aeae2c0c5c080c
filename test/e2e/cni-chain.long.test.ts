// The cases of the table that `make test` leaves out.
import './cni-chain.test.ts';
