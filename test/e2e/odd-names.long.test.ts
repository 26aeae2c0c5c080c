// All commands with a name of an ENI that is no text.
import './odd-names.test.ts';
