import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Test } from "tap";
import { LOG_STREAM } from "../../../workers/plant/log-message.js";
import { PlantClient } from "../../../workers/plant/plant-client.js";
import { NatsServer } from "./nats-server.js";

/** Ports that nobody has now; each server of a cluster must know those of the others. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  for (const server of servers) server.close();
  return ports;
}

/** Three servers that hold each stream together. */
export class NatsCluster {
  readonly servers: readonly NatsServer[];

  private constructor(servers: readonly NatsServer[]) {
    this.servers = servers;
  }

  static async startFor(t: Test): Promise<NatsCluster> {
    const ports = await freePorts(3);
    const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(", ");
    const settings = (port: number) =>
      `server_name: "server-${port}"\ncluster { name: plant, listen: "127.0.0.1:${port}", routes: [${routes}] }`;
    const cluster = new NatsCluster(await Promise.all(ports.map((port) => NatsServer.startFor(t, settings(port)))));
    await cluster.eventually((client) => client.createStreams({ replicas: 3, captureDays: 30, captureBytes: null }));
    return cluster;
  }

  get urls(): string[] {
    return this.servers.map(({ url }) => url);
  }

  client(): Promise<PlantClient> {
    return PlantClient.connect({ servers: this.urls, credentials: null, caPath: null });
  }

  /** Tries until it succeeds: for some seconds the servers may have no leader. */
  async eventually<T>(use: (client: PlantClient) => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries++) {
      let client: PlantClient | undefined;
      try {
        client = await this.client();
        return await use(client);
      } catch (error) {
        if (tries > 240) throw error;
        await setTimeout(250);
      } finally {
        await client?.close();
      }
    }
  }

  /** The server that leads the log stream now; null while there is none. */
  async leader(): Promise<NatsServer | null> {
    try {
      const connection = await connect({ servers: this.urls, timeout: 2_000, reconnect: false });
      try {
        const info = await (await jetstreamManager(connection, { timeout: 2_000, checkAPI: false })).streams.info(
          LOG_STREAM,
        );
        return this.servers.find(({ name }) => name === info.cluster?.leader) ?? null;
      } finally {
        await connection.close();
      }
    } catch {
      return null;
    }
  }
}
