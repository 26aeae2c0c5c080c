// The cases of the table that `make test` leaves out.
import './cilium-release.test.ts';
