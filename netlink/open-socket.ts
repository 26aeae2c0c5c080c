import { closeSync } from 'node:fs';
import { ioctl } from './libc.ts';
import { withNetns } from './netns.ts';
import {
  type NetlinkSocket,
  openNetlinkFd,
  probeCapabilities,
  readDatagram,
  type SocketOptions,
  writeDatagram,
  writeDatagramInBackground,
} from './socket.ts';

/** ioctl that returns a descriptor of the network namespace of a socket. @see uapi/linux/sockios.h */
const SIOCGSKNS = 0x894c;

/**
 * Opens a request socket in the current network namespace; it stays in that namespace, wherever the thread goes. The
 * owner must close it. @throws LibcError
 */
export function openSocket(options: SocketOptions): NetlinkSocket {
  const { fd, portid } = openNetlinkFd(options);
  let isOpen = true;
  return {
    portid,
    capabilities: probeCapabilities(fd),
    write: (bytes, length) => writeDatagram(fd, bytes, length),
    writeInBackground: (bytes) => writeDatagramInBackground(fd, bytes),
    read: (buffer) => readDatagram(fd, buffer),
    reopen() {
      const netns = { fd: ioctl(fd, SIOCGSKNS) };
      try {
        return withNetns(netns, () => openSocket(options));
      } finally {
        closeSync(netns.fd);
      }
    },
    close() {
      if (isOpen) {
        isOpen = false;
        closeSync(fd);
      }
    },
  };
}
