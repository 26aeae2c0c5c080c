import test from 'ava';
import { parseBackend } from '../../../cni-plugins/client/backend.ts';

for (const [text, expected] of [
  ['unix:/run/tke-eni/agent.sock', { kind: 'unix', path: '/run/tke-eni/agent.sock' }],
  ['unix:///run/tke-eni/agent.sock', { kind: 'unix', path: '/run/tke-eni/agent.sock' }],
  ['127.0.0.1:61677', { kind: 'tcp', host: '127.0.0.1', port: 61677 }],
  ['localhost:1', { kind: 'tcp', host: 'localhost', port: 1 }],
  ['[::1]:61677', { kind: 'tcp', host: '::1', port: 61677 }],
  ['', undefined],
  ['unix:', undefined],
  ['unix:relative.sock', undefined],
  [`unix:/${'x'.repeat(107)}`, undefined],
  ['127.0.0.1', undefined],
  ['127.0.0.1:0', undefined],
  ['127.0.0.1:65536', undefined],
  ['::1:61677', undefined],
  ['http://127.0.0.1:61677', undefined],
  ['/run/tke-eni/agent.sock', undefined],
] as const) {
  test(`parseBackend: ${expected === undefined ? 'refuses' : 'takes'} ${JSON.stringify(text.slice(0, 40))}`, (t) => {
    t.deepEqual(parseBackend(text), expected);
  });
}
