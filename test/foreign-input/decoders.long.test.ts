// The decoders of all folders.
import './decoders.test.ts';
