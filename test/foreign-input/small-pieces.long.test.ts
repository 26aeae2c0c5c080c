// Standard input that does not end takes half a minute.
import './small-pieces.test.ts';
