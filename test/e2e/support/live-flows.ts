import type { FlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { startTcpStream, type TcpStream } from '../../support/tcp-stream.ts';
import { describeLoss, startTraffic, type Traffic, type TrafficEnd } from '../../support/traffic.ts';
import { awaitLearned } from './learned-flows.ts';

/** Two ends that exchange packets, and what to call it. */
export type LiveWay = { readonly name: string; readonly a: TrafficEnd; readonly b: TrafficEnd };

/** Counted UDP and TCP of each way, both directions. */
export type LiveFlows = {
  /** Waits until the programs follow each of them. */
  learned(programs: FlowPrograms): Promise<void>;
  /** Ends them, and says what was lost, a line each. */
  finish(): Promise<readonly string[]>;
  /** Ends the processes without a report. Idempotent. */
  close(): Promise<void>;
};

/** Packets a second of UDP, in each direction. */
const LIVE_RATE = 200;
/** The first way has these, each next one a number more. */
export const FIRST_PORT = { udp: 7200, tcp: 7100 } as const;

/** Starts them. The caller finishes or closes them. @throws Error when two ends do not hear each other */
export async function startLiveFlows(ways: readonly LiveWay[]): Promise<LiveFlows> {
  const udp: Traffic[] = [];
  const tcp: TcpStream[] = [];
  const close = async (): Promise<void> => {
    await Promise.all([...udp, ...tcp].map((one) => one.close()));
  };
  try {
    for (const [at, { a, b }] of ways.entries()) {
      tcp.push(await startTcpStream(a, b, FIRST_PORT.tcp + at));
      udp.push(await startTraffic(a, b, { port: FIRST_PORT.udp + at, rate: LIVE_RATE }));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    learned: async (programs) => {
      for (const [at, { name, a, b }] of ways.entries()) {
        const [udpPort, tcpPort] = [FIRST_PORT.udp + at, FIRST_PORT.tcp + at];
        await awaitLearned(programs, { src: a.ip, dst: b.ip, dport: tcpPort }, `of TCP ${name}`);
        for (const [src, dst] of [[a.ip, b.ip] as const, [b.ip, a.ip] as const])
          await awaitLearned(programs, { src, dst, dport: udpPort }, `of UDP ${name}`);
      }
    },
    finish: async () => {
      const lost = await Promise.all(udp.map(async (one) => describeLoss(await one.finish())));
      const failed = await Promise.all(tcp.map((one) => one.finish()));
      return ways.flatMap(({ name }, at) => [
        ...(lost[at] ?? []).map((line) => `UDP ${name}: ${line}`),
        ...(failed[at] ?? []).map((line) => `TCP ${name}: ${line}`),
      ]);
    },
    close,
  };
}
