// Serves an agent without work on a unix socket and on TCP, for tests that attack it: `node idle-agent.ts SOCKET
// ADDRESS`. Writes "ready" when it serves; ends when its standard input closes.
import { agentImplementation } from '../../../agent/server/agent-service.ts';
import { serveGrpc } from '../../../agent/server/grpc-server.ts';

const [socketPath = '', tcpAddress = ''] = process.argv.slice(2);
const never = new Promise<never>(() => undefined);
const implementation = agentImplementation(
  {
    attach: () => never,
    detach: () => never,
    check: () => never,
    status: () => undefined,
    collectInvalid: () => never,
    addressing: () => [],
  },
  'r1',
  new AbortController().signal,
);
const server = await serveGrpc(implementation, { socketPath, tcpAddress });
process.stdin.on('end', () => void server.drain(0).then(() => process.exit(0))).resume();
process.stdout.write('ready\n');
