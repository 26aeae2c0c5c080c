import './odd-names.test.ts';
