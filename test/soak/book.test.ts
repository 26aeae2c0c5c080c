import test from 'ava';
import { AddressBook } from './book.ts';

const A = { node: 'n1', containerId: 'aaaaaaaaaaaaaaaa' };
const B = { node: 'n2', containerId: 'bbbbbbbbbbbbbbbb' };

test('AddressBook.claim: tells of both when an address is held on another node', (t) => {
  const book = new AddressBook();
  t.is(book.claim('10.0.1.4', A), undefined);
  t.is(book.claim('10.0.1.4', B), '10.0.1.4 was given to bbbbbbbbbbbb on n2 while aaaaaaaaaaaa on n1 has it');
});

test('AddressBook.claim: takes the same answer twice, and an address that was released', (t) => {
  const book = new AddressBook();
  book.claim('10.0.1.4', A);
  t.is(book.claim('10.0.1.4', A), undefined);
  book.release('10.0.1.4', A);
  t.is(book.claim('10.0.1.4', B), undefined);
});

test('AddressBook.release: leaves the entry of another alone', (t) => {
  const book = new AddressBook();
  book.claim('10.0.1.4', B);
  book.release('10.0.1.4', A);
  t.deepEqual([...book.entries()], [['10.0.1.4', B]]);
});
