import test from 'ava';
import { UndoStack } from '../../runtime/undo-stack.ts';

test('unwind: undoes newest first', (t) => {
  const seen: string[] = [];
  const undo = new UndoStack();
  undo.push('link', () => seen.push('link'));
  undo.push('route', () => seen.push('route'));
  t.deepEqual(undo.unwind(), []);
  t.deepEqual(seen, ['route', 'link']);
});

test('unwind: goes on after an undo that fails and reports it', (t) => {
  const seen: string[] = [];
  const undo = new UndoStack();
  const failure = new Error('busy');
  undo.push('link', () => seen.push('link'));
  undo.push('route', () => {
    throw failure;
  });
  t.deepEqual(undo.unwind(), [{ what: 'route', error: failure }]);
  t.deepEqual(seen, ['link']);
});

test('unwind: does nothing after commit, nor twice', (t) => {
  const undo = new UndoStack();
  undo.push('link', () => t.fail());
  undo.commit();
  t.deepEqual(undo.unwind(), []);
});
