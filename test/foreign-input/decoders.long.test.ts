import './decoders.test.ts';
