// The lives that `make test` leaves out.
import './cluster-routes.test.ts';
