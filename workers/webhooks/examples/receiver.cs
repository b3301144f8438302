// A receiver of webhooks, to copy from. It needs .NET 8 or newer, and nothing else. README.md beside this file explains it.
using System;
using System.Collections.Generic;
using System.Collections.Specialized;
using System.IO;
using System.Linq;
using System.Net;
using System.Security.Cryptography;
using System.Text;
using System.Threading.Tasks;

static class Receiver
{
    const int MostBodyBytes = 16 * 1024 * 1024; // the service sends at most 12 MiB
    const long ClockSeconds = 300;
    static readonly HashSet<string> Seen = new HashSet<string>();

    static byte[][] Keys; // while a secret is changed: the new one and the old one

    static int Main(string[] arguments)
    {
        var secrets = Environment.GetEnvironmentVariable("WEBHOOK_SECRETS") ?? "";
        Keys = secrets.Split((char[])null, StringSplitOptions.RemoveEmptyEntries).Select(KeyOf).ToArray();
        if (Keys.Length == 0 || Keys.Any(key => key.Length == 0)) // anybody could sign with an empty one
        {
            Console.Error.WriteLine("WEBHOOK_SECRETS must have the secret of the webhook");
            return 1;
        }
        var events = arguments[0];
        if (File.Exists(events)) Seen.UnionWith(File.ReadLines(events).Select(line => line.Split(' ')[0]));
        var listener = new HttpListener();
        listener.Prefixes.Add($"http://127.0.0.1:{arguments[1]}/");
        listener.Start();
        Console.WriteLine($"listening on {arguments[1]}");
        while (true)
        {
            var context = listener.GetContext();
            Task.Run(() => Answer(context, events));
        }
    }

    static void Answer(HttpListenerContext context, string events)
    {
        int status;
        try
        {
            status = Take(context.Request, events);
        }
        catch (Exception error) // a 5xx: the service sends it again
        {
            Console.Error.WriteLine(error.Message);
            status = 503;
        }
        context.Response.StatusCode = status;
        context.Response.KeepAlive = status == 204; // else some of the body may still be to come
        context.Response.Close();
    }

    static int Take(HttpListenerRequest request, string events)
    {
        if (request.HttpMethod != "POST") return 405;
        if (request.ContentLength64 > MostBodyBytes) return 413;
        var body = new MemoryStream();
        var chunk = new byte[64 * 1024];
        for (int read; (read = request.InputStream.Read(chunk, 0, chunk.Length)) > 0;)
        {
            if (body.Length + read > MostBodyBytes) return 413; // it came in chunks, and did not say how long it is
            body.Write(chunk, 0, read);
        }
        if (!IsOurs(request.Headers, body.ToArray()))
        {
            Console.WriteLine("refused: none of the secrets signed it, or long ago");
            return 401;
        }
        var id = request.Headers["webhook-id"];
        var name = request.Headers["X-Service-Event"];
        lock (Seen)
        {
            if (Seen.Contains(id))
            {
                Console.WriteLine($"{name} again");
                return 204;
            }
            // On the disk before the service gets its answer. Your own system comes in place of this file.
            var line = Encoding.UTF8.GetBytes($"{id} {name} {Convert.ToBase64String(body.ToArray())}\n");
            using (var file = new FileStream(events, FileMode.Append))
            {
                file.Write(line, 0, line.Length);
                file.Flush(true);
            }
            Seen.Add(id);
        }
        Console.WriteLine($"{name} new");
        return 204;
    }

    // Whether one of the secrets signed these bytes with this id, and not long ago (standardwebhooks.com).
    static bool IsOurs(NameValueCollection headers, byte[] body)
    {
        string id = headers["webhook-id"], time = headers["webhook-timestamp"], signature = headers["webhook-signature"];
        if (id == null || signature == null || !long.TryParse(time, out var seconds)) return false;
        if (Math.Abs(DateTimeOffset.UtcNow.ToUnixTimeSeconds() - seconds) > ClockSeconds) return false;
        var signed = Encoding.UTF8.GetBytes($"{id}.{time}.").Concat(body).ToArray();
        var expected = Keys.Select(key => "v1," + Convert.ToBase64String(new HMACSHA256(key).ComputeHash(signed))).ToArray();
        return signature.Split(' ').Any(one => expected.Any(other => IsEqual(one, other)));
    }

    static byte[] KeyOf(string secret)
    {
        return secret.StartsWith("whsec_") ? Convert.FromBase64String(secret.Substring(6)) : Encoding.UTF8.GetBytes(secret);
    }

    // In constant time: how long it takes says nothing of where two texts differ.
    static bool IsEqual(string one, string other)
    {
        var difference = one.Length ^ other.Length;
        for (var at = 0; at < one.Length && at < other.Length; at++) difference |= one[at] ^ other[at];
        return difference == 0;
    }
}
