/** Serves a fake agent on the socket named as argument until its parent closes standard input. */
import { createFakeAgent, serve } from '../../test/cni-plugins/support/test-agent.ts';

const [socket = ''] = process.argv.slice(2);
const { answers } = createFakeAgent((n) => ({ address: `10.0.${n >> 8}.${n & 255}/32`, gateway: '169.254.1.1' }));
await serve(`unix:${socket}`, answers);
console.log('ready');
process.stdin.resume().on('end', () => process.exit(0));
