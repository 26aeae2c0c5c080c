// All kinds of connections that are held.
import './held-connections.test.ts';
