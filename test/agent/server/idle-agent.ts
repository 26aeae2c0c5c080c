// Serves an agent without work on a unix socket and on TCP, and kubelet's service on another socket, for tests that
// attack it: `node idle-agent.ts SOCKET ADDRESS PLUGIN_SOCKET`. Writes "ready" when it serves; ends when its standard input closes.
import { openPluginEndpoint } from '../../../agent/device-plugin/plugin-endpoint.ts';
import { agentImplementation } from '../../../agent/server/agent-service.ts';
import { serveGrpc } from '../../../agent/server/grpc-server.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';

const [socketPath = '', tcpAddress = '', pluginSocket = ''] = process.argv.slice(2);
const never = new Promise<never>(() => undefined);
const implementation = agentImplementation(
  {
    attach: () => never,
    detach: () => never,
    check: () => never,
    status: () => undefined,
    collectInvalid: () => never,
    ignoredKeys: () => undefined,
    addressing: () => [],
  },
  'r1',
  new AbortController().signal,
);
const server = await serveGrpc(implementation, {
  socketPath,
  tcp: { address: tcpAddress, log: silentLogger, clock: systemClock },
});
await openPluginEndpoint(pluginSocket, () => undefined).serve();
process.stdin.on('end', () => void server.drain(0).then(() => process.exit(0))).resume();
process.stdout.write('ready\n');
